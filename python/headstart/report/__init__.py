"""Pages of HTML that need nothing but a browser: no network, the plotting library within the page."""
