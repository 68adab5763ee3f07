"""The live half, a module for each command: with real files, devices, commands and clients."""
