/* Records of two classes that were freed, kept for the next ones: a tensor and a node are made and
   freed in every recorded operation, and Python's own allocation costs as much as filling them. */
#include <Python.h>
#include <string.h>

#define WENGERT_RECORDS 512

/* The functions are those of one class exactly. Classes derived from it inherit them and are sent
   on to Python's: their instances may be larger. */
#define WENGERT_KEEP(name)                                                                    \
static PyTypeObject* name##_class;                                                            \
static destructor name##_dealloc_below;                                                       \
static PyObject* name##_kept[WENGERT_RECORDS];                                                \
static int name##_count;                                                                      \
static PyObject* name##_alloc(PyTypeObject* cls, Py_ssize_t items) {                          \
    if (cls != name##_class || !name##_count) return PyType_GenericAlloc(cls, items);         \
    PyObject* record = name##_kept[--name##_count];                                           \
    memset((char*)record + sizeof(PyObject), 0, cls->tp_basicsize - sizeof(PyObject));        \
    PyObject_Init(record, cls);                                                               \
    PyObject_GC_Track(record);                                                                \
    return record;                                                                            \
}                                                                                             \
static void name##_free(void* record) {                                                       \
    if (Py_TYPE((PyObject*)record) == name##_class && name##_count < WENGERT_RECORDS)         \
        name##_kept[name##_count++] = (PyObject*)record;                                      \
    else                                                                                      \
        PyObject_GC_Del(record);                                                              \
}                                                                                             \
static void name##_install(PyTypeObject* cls, destructor dealloc) {                           \
    name##_class = cls;                                                                       \
    name##_dealloc_below = cls->tp_dealloc;                                                   \
    cls->tp_dealloc = dealloc;                                                                \
    cls->tp_alloc = name##_alloc;                                                             \
    cls->tp_free = name##_free;                                                               \
}

WENGERT_KEEP(wengert_tensor)
WENGERT_KEEP(wengert_node)

/* A node may hold the last reference to another one, and so on: Python unwinds deep nests. */
static void wengert_node_dealloc(PyObject* node) {
    PyObject_GC_UnTrack(node);
    Py_TRASHCAN_BEGIN(node, wengert_node_dealloc)
    wengert_node_dealloc_below(node);
    Py_TRASHCAN_END
}

/* Where a record has a field of a known value; 0 if nowhere. */
static Py_ssize_t wengert_place_of(PyObject* record, PyObject* value) {
    Py_ssize_t place = sizeof(PyObject), end = Py_TYPE(record)->tp_basicsize;
    for (; place < end; place += sizeof(PyObject*))
        if (*(PyObject**)((char*)record + place) == value) return place;
    return 0;
}
