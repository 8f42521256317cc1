"""The charts of the page, each as what plotly draws."""
