"""The hints study: commands with cold caches, plain and with what they read prefetched, each beside its forecast."""
