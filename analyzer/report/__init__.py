"""Writing the results: the JSON document, CSV and Parquet files, a terminal view and one HTML page."""
