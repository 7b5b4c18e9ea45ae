Bconst_7J
?Ä*A¿úºg¿