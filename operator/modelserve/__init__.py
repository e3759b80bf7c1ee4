"""ModelServe: large language models on Kubernetes, served and scaled by one custom resource."""
