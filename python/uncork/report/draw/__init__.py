"""Charts, graphs and flames as SVG."""
