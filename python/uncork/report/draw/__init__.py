"""Draw charts, graphs and flame graphs as SVG."""
