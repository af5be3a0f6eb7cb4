"""Plugins that come with Everturn. Tool calling is called through the hooks of every plugin, and uses more than they give."""
