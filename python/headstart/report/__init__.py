"""Pages of HTML that need nothing but a browser: no network, no script, charts as SVG."""
