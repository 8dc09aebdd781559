/* SPDX-License-Identifier: MIT
 *
 * What the status codes mean, in words, and the version of the library.
 */
#include <isobit/isobit.h>

const char *iso_strerror(iso_status status) {
    /* No default: a new code without a sentence is a warning, and so an error. */
    switch (status) {
    case ISOBIT_OK: return "success";
    case ISOBIT_E_NULL: return "a pointer that is read or written is NULL";
    case ISOBIT_E_SIZE:
        return "the size member of an options struct is not one that this version knows";
    case ISOBIT_E_DIM: return "a dimension is out of range";
    case ISOBIT_E_LD: return "a stride is smaller than the row that it steps over";
    case ISOBIT_E_OVERFLOW: return "a product of sizes does not fit in the address space";
    case ISOBIT_E_ALIAS: return "an output overlaps an input where that is not allowed";
    case ISOBIT_E_ALIGN: return "a pointer lacks an alignment that is asked for";
    case ISOBIT_E_DTYPE: return "a tensor has another element type than expected";
    case ISOBIT_E_OPTION: return "an option has a value that does not exist";
    case ISOBIT_E_UNSUPPORTED: return "valid, but not implemented or not possible on this machine";
    case ISOBIT_E_ISA: return "no instruction set of that name, or this machine lacks it";
    case ISOBIT_E_RANGE: return "a value is out of range";
    case ISOBIT_E_NOMEM: return "memory or threads could not be had";
    case ISOBIT_E_WORKSPACE: return "the memory that the caller gave is too small";
    case ISOBIT_E_IO: return "a file could not be opened or read";
    case ISOBIT_E_TRUNCATED: return "a file ends before its contents do";
    case ISOBIT_E_HEADER_SIZE: return "the header length of a safetensors file is impossible";
    case ISOBIT_E_JSON: return "not valid JSON, or not of the form that is expected";
    case ISOBIT_E_UTF8: return "text is not valid UTF-8";
    case ISOBIT_E_DUPLICATE: return "a name occurs twice";
    case ISOBIT_E_OFFSET: return "tensor offsets are reversed, overlap or lie outside the file";
    case ISOBIT_E_HOLE: return "the file holds bytes that no tensor claims";
    case ISOBIT_E_SHAPE: return "a tensor has another shape than expected";
    case ISOBIT_E_MISSING: return "a tensor, key or file is missing";
    case ISOBIT_E_CONFIG: return "a configuration value is impossible";
    case ISOBIT_E_LIMIT: return "a limit of the library is exceeded";
    case ISOBIT_E_INTERNAL: return "a defect of isobit: please report it";
    case ISOBIT_E_CANCELLED: return "a function of the caller has ended the call";
    }
    return "unknown status code";
}

#define TEXT_OF(x) #x
#define TEXT(x) TEXT_OF(x)

const char *iso_version(void) {
    return TEXT(ISOBIT_VERSION_MAJOR) "." TEXT(ISOBIT_VERSION_MINOR) "." TEXT(ISOBIT_VERSION_PATCH);
}
