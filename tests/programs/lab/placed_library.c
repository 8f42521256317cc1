/* Data of a library that is loaded while the program runs. */
char library_table[2 << 20];
