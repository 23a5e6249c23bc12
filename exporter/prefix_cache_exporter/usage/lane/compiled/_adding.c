/* What is done to every decoded line: its members reached by offset, its numbers added to the sums of its words.
 *
 * Only the plainest lines are taken. Whatever asks for more than comparing and adding (words not seen before, written
 * tokens, numbers that do not agree, a time out of bounds) is left to the loop of `narrow.py`, which would have done the
 * same to the others. No Python code runs in here but the hashing and comparing of words, so borrowed references do. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <math.h>
#include <structmember.h>

enum { DEEPEST = 8, MOST_WAYS = 16 };

/* A way to a member of a decoded line: slots of structs, one within the other. No steps: lines have no such member. */
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

/* A whole number from 0 up; -1 where it is none, or there is none. */
static inline long long
count_at(PyObject *line, const Way *way)
{
    int overflow;
    PyObject *number = reach(line, way);
    return number != NULL && PyLong_CheckExact(number) ? PyLong_AsLongLongAndOverflow(number, &overflow) : -1;
}

/* 64 bits are enough: `shape.py` lets no count of 2**30 or above come here. */
typedef struct {
    PyObject_HEAD
    long long hits, others, total, read, output, unsplit;
    double most, low, high;
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
    {NULL, 0, 0, 0, NULL},
};

static PyTypeObject TotalsType = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "prefix_cache_exporter.usage.lane.compiled._adding.Totals",
    .tp_basicsize = sizeof(Totals),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
    .tp_new = PyType_GenericNew,
    .tp_members = totals_members,
};

typedef struct {
    PyObject_HEAD
    PyObject *members, *no_words; /* kept, since members keep their types */
    int exclusive, words, zeros;
    Way input, output, read, write, total, uncached, time, word[MOST_WAYS], zero[MOST_WAYS];
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
    PyObject *given = reach(line, way);
    if (given == NULL || !PyFloat_CheckExact(given)) {
        return 0;
    }
    double time = PyFloat_AS_DOUBLE(given);
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

/* Whether a line was added; -1 with an error. */
static int
add_line(const Adder *self, PyObject *line, PyObject *known, Times *times)
{
    long long input = count_at(line, &self->input), output = count_at(line, &self->output);
    long long read = self->read.steps ? count_at(line, &self->read) : 0;
    long long total = self->exclusive ? input + read : input;
    if (input < 0 || output < 0 || read < 0 || read > total) {
        return 0;
    }
    if ((self->write.steps && count_at(line, &self->write) != 0) ||
        (self->uncached.steps && count_at(line, &self->uncached) != total - read) ||
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
    if ((double)total > totals->most || (self->time.steps && !in_time(line, &self->time, totals, times))) {
        return 0;
    }
    totals->total += total;
    totals->read += read;
    totals->output += output;
    totals->hits += read > 0;
    totals->others += read == 0;
    totals->unsplit += self->write.steps > 0;
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

static PyObject *
adder_new(PyTypeObject *type, PyObject *args, PyObject *options)
{
    static char *names[] = {"words", "zeros",    "input", "output",    "read", "write",
                            "total", "uncached", "time",  "exclusive", NULL};
    PyObject *words, *zeros, *input, *output, *read, *write, *total, *uncached, *time;
    int exclusive;
    if (!PyArg_ParseTupleAndKeywords(args, options, "$OOOOOOOOOp", names, &words, &zeros, &input, &output, &read,
                                     &write, &total, &uncached, &time, &exclusive)) {
        return NULL;
    }
    Adder *self = (Adder *)type->tp_alloc(type, 0);
    if (self == NULL) {
        return NULL;
    }
    self->exclusive = exclusive;
    self->members = PyTuple_Pack(9, words, zeros, input, output, read, write, total, uncached, time);
    self->no_words = PyTuple_New(0);
    if (self->members == NULL || self->no_words == NULL || way_from(input, &self->input) < 0 ||
        way_from(output, &self->output) < 0 || (read != Py_None && way_from(read, &self->read) < 0) ||
        (write != Py_None && way_from(write, &self->write) < 0) ||
        (total != Py_None && way_from(total, &self->total) < 0) ||
        (uncached != Py_None && way_from(uncached, &self->uncached) < 0) ||
        (time != Py_None && way_from(time, &self->time) < 0) || ways_from(words, self->word, &self->words) < 0 ||
        ways_from(zeros, self->zero, &self->zeros) < 0) {
        Py_DECREF(self);
        return NULL;
    }
    return (PyObject *)self;
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
    PyVarObject_HEAD_INIT(NULL, 0)
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
