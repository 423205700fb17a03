/* A library with the name of the CUDA back end that is not a back end. */
int holdfast_consumer_backend(void) { return 0; }
