"""Self-contained HTML pages: the plotting library is embedded, and no network is used."""
