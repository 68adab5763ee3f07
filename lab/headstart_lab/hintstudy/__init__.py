"""The hints study: commands with cold caches, plain and with prefetching of what they read, beside their forecasts."""
