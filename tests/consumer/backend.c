/* A library of the right name that is no back end. */
int holdfast_consumer_backend(void) { return 0; }
