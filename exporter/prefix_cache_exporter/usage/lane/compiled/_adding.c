/* What is done to every decoded line: its members reached by offset, its numbers added to the sums of its words.
 *
 * Only the plainest lines are taken. Whatever asks for more than comparing and adding (words not seen before, numbers
 * that do not agree, a time out of bounds) is left to the loop of `narrow.py`, which would have done the same to the
 * others. No Python code runs in here but the hashing and comparing of words, so borrowed references do. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <math.h>
#include <structmember.h>

#include "moments.h"
#include "ways.h"

/* 64 bits are enough: `shape.py` lets no count of 2**30 or above come here. */
typedef struct {
    PyObject_HEAD
    long long hits, others, total, read, output, unsplit;
    double most, low, high;
    PyObject *writes; /* tokens by time to live */
} Totals;

static PyMemberDef totals_members[] = {
    {"hits", T_LONGLONG, offsetof(Totals, hits), 0, NULL},
    {"others", T_LONGLONG, offsetof(Totals, others), 0, NULL},
    {"total", T_LONGLONG, offsetof(Totals, total), 0, NULL},
    {"read", T_LONGLONG, offsetof(Totals, read), 0, NULL},
    {"output", T_LONGLONG, offsetof(Totals, output), 0, NULL},
    {"unsplit", T_LONGLONG, offsetof(Totals, unsplit), 0, NULL},
    {"most", T_DOUBLE, offsetof(Totals, most), 0, NULL},
    {"low", T_DOUBLE, offsetof(Totals, low), 0, NULL},
    {"high", T_DOUBLE, offsetof(Totals, high), 0, NULL},
    {"writes", T_OBJECT_EX, offsetof(Totals, writes), 0, NULL},
    {NULL, 0, 0, 0, NULL},
};

static void
totals_dealloc(Totals *self)
{
    Py_CLEAR(self->writes);
    Py_TYPE(self)->tp_free((PyObject *)self);
}

static PyTypeObject TotalsType = {
    .ob_base = {PyObject_HEAD_INIT(NULL) 0},
    .tp_name = "prefix_cache_exporter.usage.lane.compiled._adding.Totals",
    .tp_basicsize = sizeof(Totals),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
    .tp_new = PyType_GenericNew,
    .tp_dealloc = (destructor)totals_dealloc,
    .tp_members = totals_members,
};

typedef struct {
    PyObject_HEAD
    PyObject *members, *no_words; /* all that ways were made of, and what stands for no words */
    PyObject *ttl[MOST_WAYS + 1]; /* borrowed of the members; the last is of what no time to live is known */
    int exclusive, words, zeros, ttls;
    Way input, output, reasoning, read, write, total, uncached, time, word[MOST_WAYS], zero[MOST_WAYS], part[MOST_WAYS];
} Adder;

typedef struct {
    double first, last, low, high, earliest, latest;
} Times;

/* Borrowed; NULL where the words are new, or with an error. */
static Totals *
totals_of(const Adder *self, PyObject *line, PyObject *known)
{
    PyObject *found = known;
    for (int n = 0; n < self->words; n++) {
        PyObject *word = reach(line, &self->word[n]);
        if (word == NULL || !PyDict_CheckExact(found) || (found = PyDict_GetItemWithError(found, word)) == NULL) {
            return NULL;
        }
    }
    if (self->words == 0) {
        found = PyDict_GetItemWithError(known, self->no_words);
    }
    return found != NULL && PyObject_TypeCheck(found, &TotalsType) ? (Totals *)found : NULL;
}

/* Whether a time suits; what is seen of times is kept. */
static inline int
in_time(PyObject *line, const Way *way, const Totals *totals, Times *times)
{
    double time;
    PyObject *given = reach(line, way);
    if (given != NULL && PyFloat_CheckExact(given)) {
        time = PyFloat_AS_DOUBLE(given);
    } else if (given == NULL || !moment_of(given, &time)) {
        return 0;
    }
    if (times->low <= time && time <= times->high) {
        times->first = fmin(time, times->first);
        times->last = fmax(time, times->last);
        return 1;
    }
    if (totals->low <= time && time <= totals->high) {
        times->earliest = fmin(time, times->earliest);
        times->latest = fmax(time, times->latest);
        return 1;
    }
    return 0;
}

/* Adds tokens that were written; -1 with an error. */
static int
add_written(PyObject *writes, PyObject *ttl, long long tokens)
{
    PyObject *before = PyDict_GetItemWithError(writes, ttl);
    if (before == NULL && PyErr_Occurred()) {
        return -1;
    }
    PyObject *more = PyLong_FromLongLong(tokens), *sum = more;
    if (before != NULL && more != NULL) {
        sum = PyNumber_Add(before, more);
        Py_DECREF(more);
    }
    int failed = sum == NULL || PyDict_SetItem(writes, ttl, sum) < 0;
    Py_XDECREF(sum);
    return failed ? -1 : 0;
}

/* Whether a line was added; -1 with an error. */
static int
add_line(const Adder *self, PyObject *line, PyObject *known, Times *times)
{
    long long input = count_at(line, &self->input), output = count_at(line, &self->output);
    long long reasoning = self->reasoning.steps ? count_at(line, &self->reasoning) : 0;
    long long read = self->read.steps ? count_at(line, &self->read) : 0;
    long long write = self->write.steps ? count_at(line, &self->write) : 0, rest = write, parts[MOST_WAYS + 1];
    long long total = self->exclusive ? input + read + write : input;
    if (input < 0 || output < 0 || reasoning < 0 || read < 0 || write < 0 || read + write > total) {
        return 0;
    }
    output += reasoning;
    for (int n = 0; n < self->ttls; n++) {
        parts[n] = count_at(line, &self->part[n]);
        if (parts[n] < 0 || (rest -= parts[n]) < 0) {
            return 0;
        }
    }
    parts[self->ttls] = rest;
    if ((self->uncached.steps && count_at(line, &self->uncached) != total - read - write) ||
        (self->total.steps && count_at(line, &self->total) != total + output)) {
        return 0;
    }
    for (int n = 0; n < self->zeros; n++) {
        if (count_at(line, &self->zero[n]) != 0) {
            return 0;
        }
    }
    Totals *totals = totals_of(self, line, known);
    if (totals == NULL) {
        return PyErr_Occurred() ? -1 : 0;
    }
    if (totals->writes == NULL || !PyDict_CheckExact(totals->writes) || (double)total > totals->most ||
        (self->time.steps && !in_time(line, &self->time, totals, times))) {
        return 0;
    }
    totals->total += total;
    totals->read += read;
    totals->output += output;
    totals->hits += read > 0;
    totals->others += read == 0;
    totals->unsplit += self->write.steps > 0 && write == 0;
    for (int n = 0; write > 0 && n <= self->ttls; n++) {
        if (parts[n] > 0 && add_written(totals->writes, self->ttl[n], parts[n]) < 0) {
            return -1;
        }
    }
    return 1;
}

static PyObject *
adder_add(Adder *self, PyObject *args)
{
    PyObject *lines, *known;
    Times times = {.earliest = INFINITY, .latest = -INFINITY};
    if (!PyArg_ParseTuple(args, "O!O!(dddd)", &PyList_Type, &lines, &PyDict_Type, &known, &times.first, &times.last,
                          &times.low, &times.high)) {
        return NULL;
    }
    PyObject *left = PyList_New(0);
    if (left == NULL) {
        return NULL;
    }
    for (Py_ssize_t n = 0; n < PyList_GET_SIZE(lines); n++) {
        PyObject *line = PyList_GET_ITEM(lines, n);
        int added = add_line(self, line, known, &times);
        if (added < 0 || (added == 0 && PyList_Append(left, line) < 0)) {
            Py_DECREF(left);
            return NULL;
        }
    }
    return Py_BuildValue("Ndddd", left, times.first, times.last, times.earliest, times.latest);
}

static PyObject *
adder_new(PyTypeObject *type, PyObject *args, PyObject *options)
{
    static char *names[] = {"words", "zeros", "ttls",  "parts",    "input", "output",    "reasoning",
                            "read",  "write", "total", "uncached", "time",  "exclusive", NULL};
    PyObject *words, *zeros, *ttls, *parts, *given[8];
    int exclusive;
    if (!PyArg_ParseTupleAndKeywords(args, options, "$OOO!OOOOOOOOOp", names, &words, &zeros, &PyTuple_Type, &ttls,
                                     &parts, &given[0], &given[1], &given[2], &given[3], &given[4], &given[5],
                                     &given[6], &given[7], &exclusive)) {
        return NULL;
    }
    Adder *self = (Adder *)type->tp_alloc(type, 0);
    if (self == NULL) {
        return NULL;
    }
    self->exclusive = exclusive;
    self->no_words = PyTuple_New(0);
    self->members = PyTuple_Pack(12, words, zeros, ttls, parts, given[0], given[1], given[2], given[3], given[4],
                                 given[5], given[6], given[7]);
    if (self->members == NULL || self->no_words == NULL || ways_from(words, self->word, &self->words) < 0 ||
        ways_from(zeros, self->zero, &self->zeros) < 0 || ways_from(parts, self->part, &self->ttls) < 0) {
        goto failed;
    }
    if (PyTuple_GET_SIZE(ttls) != self->ttls + 1) {
        PyErr_Format(PyExc_TypeError, "expected a time to live for each of %d parts and the rest, got %R", self->ttls,
                     ttls);
        goto failed;
    }
    for (int n = 0; n <= self->ttls; n++) {
        self->ttl[n] = PyTuple_GET_ITEM(ttls, n);
    }
    Way *ways[] = {&self->input, &self->output, &self->reasoning, &self->read,
                   &self->write, &self->total,  &self->uncached,  &self->time};
    for (int n = 0; n < 8; n++) {
        if ((n < 2 || given[n] != Py_None) && way_from(given[n], ways[n]) < 0) {
            goto failed;
        }
    }
    return (PyObject *)self;
failed:
    Py_DECREF(self);
    return NULL;
}

static void
adder_dealloc(Adder *self)
{
    Py_XDECREF(self->members);
    Py_XDECREF(self->no_words);
    Py_TYPE(self)->tp_free((PyObject *)self);
}

static PyMethodDef adder_methods[] = {
    {"add", (PyCFunction)adder_add, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyTypeObject AdderType = {
    .ob_base = {PyObject_HEAD_INIT(NULL) 0},
    .tp_name = "prefix_cache_exporter.usage.lane.compiled._adding.Adder",
    .tp_basicsize = sizeof(Adder),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_new = adder_new,
    .tp_dealloc = (destructor)adder_dealloc,
    .tp_methods = adder_methods,
};

static PyObject *
hashes(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *lines, *members;
    Way way;
    if (!PyArg_ParseTuple(args, "O!O", &PyList_Type, &lines, &members) || way_from(members, &way) < 0) {
        return NULL;
    }
    PyObject *found = PyBytes_FromStringAndSize(NULL, PyList_GET_SIZE(lines) * (Py_ssize_t)sizeof(Py_hash_t));
    if (found == NULL) {
        return NULL;
    }
    Py_hash_t *hash = (Py_hash_t *)PyBytes_AS_STRING(found);
    for (Py_ssize_t n = 0; n < PyList_GET_SIZE(lines); n++, hash++) {
        PyObject *member = reach(PyList_GET_ITEM(lines, n), &way);
        if (member == NULL) {
            PyErr_SetString(PyExc_TypeError, "a line without the member to hash");
        }
        if (member == NULL || (*hash = PyObject_Hash(member)) == -1) {
            Py_DECREF(found);
            return NULL;
        }
    }
    return found;
}

static PyMethodDef functions[] = {
    {"hashes", hashes, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, .m_name = "_adding", .m_size = -1, .m_methods = functions};

PyMODINIT_FUNC
PyInit__adding(void)
{
    PyObject *made = PyModule_Create(&module);
    if (made == NULL || PyModule_AddType(made, &TotalsType) < 0 || PyModule_AddType(made, &AdderType) < 0) {
        Py_XDECREF(made);
        return NULL;
    }
    return made;
}
