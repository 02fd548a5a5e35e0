/* Python of the standalone folder. It is linked so that it finds every library in the folder's `lib`. */
int Py_BytesMain(int count, char **words);

int main(int count, char **words) { return Py_BytesMain(count, words); }
