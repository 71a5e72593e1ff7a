"""Reports: pictures and pages. They read tables and compute nothing."""
