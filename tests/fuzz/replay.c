/* SPDX-License-Identifier: MIT
 *
 * Runs a fuzz target over files, without libFuzzer: the seeds in the tests, and an artifact that
 * is looked into with another compiler, debugger or instruction set.
 *
 *   fuzz_NAME FILE-OR-DIRECTORY...
 */
#include "fuzz.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

static size_t count;

static int replay_file(const char *path) {
    FILE *file = fopen(path, "rb");
    long end = -1;
    if (file && fseek(file, 0, SEEK_END) == 0)
        end = ftell(file);
    uint8_t *data = end >= 0 ? malloc(end ? (size_t)end : 1) : NULL;
    int good =
        data && fseek(file, 0, SEEK_SET) == 0 && fread(data, 1, (size_t)end, file) == (size_t)end;
    if (file)
        (void)fclose(file);
    if (good) {
        /* So that a crash names its input. */
        if (getenv("ISOBIT_REPLAY_VERBOSE"))
            (void)fprintf(stderr, "%s\n", path);
        (void)LLVMFuzzerTestOneInput(data, (size_t)end);
        count++;
    } else {
        (void)fprintf(stderr, "cannot read %s\n", path);
    }
    free(data);
    return good;
}

static int replay(const char *path) {
    struct stat st;
    if (stat(path, &st) != 0 || !S_ISDIR(st.st_mode))
        return replay_file(path);
    DIR *directory = opendir(path);
    int good = directory != NULL;
    for (struct dirent *entry; good && (entry = readdir(directory));) {
        char name[4096];
        (void)snprintf(name, sizeof name, "%s/%s", path, entry->d_name);
        if (entry->d_name[0] != '.')
            good = replay_file(name);
    }
    if (directory)
        (void)closedir(directory);
    return good;
}

int main(int argc, char **argv) {
    int good = argc > 1;
    for (int i = 1; i < argc && good; i++)
        good = replay(argv[i]);
    printf("%zu inputs\n", count);
    return good && count ? 0 : 1;
}
