/* Ways to members of decoded lines: by the offsets of slots, instead of by their names. */
#ifndef WAYS_H
#define WAYS_H

#include <Python.h>
#include <structmember.h>

enum { DEEPEST = 8, MOST_WAYS = 16 };

/* Slots of structs, one within the other. No steps: lines have no such member. */
typedef struct {
    int steps;
    PyTypeObject *types[DEEPEST];
    Py_ssize_t offsets[DEEPEST];
} Way;

/* Borrowed; NULL where a struct on the way is of another type. */
static inline PyObject *
reach(PyObject *one, const Way *way)
{
    for (int step = 0; step < way->steps; step++) {
        if (one == NULL || Py_TYPE(one) != way->types[step]) {
            return NULL;
        }
        one = *(PyObject **)((char *)one + way->offsets[step]);
    }
    return one;
}

/* A whole number from 0 up; -1 where it is none, or there is none. */
static inline long long
count_at(PyObject *line, const Way *way)
{
    int overflow;
    PyObject *number = reach(line, way);
    return number != NULL && PyLong_CheckExact(number) ? PyLong_AsLongLongAndOverflow(number, &overflow) : -1;
}

/* From a tuple of member descriptors, which keep their types: to be kept as long as the way. -1 with an error. */
static int
way_from(PyObject *members, Way *way)
{
    if (!PyTuple_Check(members) || PyTuple_GET_SIZE(members) < 1 || PyTuple_GET_SIZE(members) > DEEPEST) {
        PyErr_Format(PyExc_TypeError, "expected a tuple of 1 to %d members of structs, got %R", DEEPEST, members);
        return -1;
    }
    way->steps = (int)PyTuple_GET_SIZE(members);
    for (int step = 0; step < way->steps; step++) {
        PyObject *member = PyTuple_GET_ITEM(members, step);
        PyMemberDef *slot = Py_IS_TYPE(member, &PyMemberDescr_Type) ? ((PyMemberDescrObject *)member)->d_member : NULL;
        if (slot == NULL || slot->type != T_OBJECT_EX) {
            PyErr_Format(PyExc_TypeError, "expected a member of a struct, got %R", member);
            return -1;
        }
        way->types[step] = PyDescr_TYPE(member);
        way->offsets[step] = slot->offset;
    }
    return 0;
}

static int
ways_from(PyObject *given, Way *ways, int *count)
{
    if (!PyTuple_Check(given) || PyTuple_GET_SIZE(given) > MOST_WAYS) {
        PyErr_Format(PyExc_TypeError, "expected a tuple of at most %d ways, got %R", MOST_WAYS, given);
        return -1;
    }
    *count = (int)PyTuple_GET_SIZE(given);
    for (int n = 0; n < *count; n++) {
        if (way_from(PyTuple_GET_ITEM(given, n), &ways[n]) < 0) {
            return -1;
        }
    }
    return 0;
}

#endif
