/* Times as most logs write them: `2026-11-30T02:12:40.123456Z`; of any other form, `values.py` decides. */
#ifndef MOMENTS_H
#define MOMENTS_H

#include <Python.h>

/* The next digits as a number; -1 where they are none. */
static inline int
digits(const unsigned char **at, const unsigned char *end, int count)
{
    int number = 0;
    if (end - *at < count) {
        return -1;
    }
    for (; count > 0; count--, (*at)++) {
        if (**at < '0' || **at > '9') {
            return -1;
        }
        number = 10 * number + (**at - '0');
    }
    return number;
}

/* Whether a character is next; it is passed then. */
static inline int
passed(const unsigned char **at, const unsigned char *end, char expected)
{
    if (*at == end || **at != (unsigned char)expected) {
        return 0;
    }
    (*at)++;
    return 1;
}

/* Days from 1970 to a day of the Gregorian calendar; the year begins in March, so that the leap day is its last. */
static inline long long
days_to(int year, int month, int day)
{
    long long y = month > 2 ? year : year - 1, m = month > 2 ? month - 3 : month + 9;
    return 365 * y + y / 4 - y / 100 + y / 400 + (153 * m + 2) / 5 + day - 719469;
}

static inline int
days_in(int year, int month)
{
    int leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    return month == 2 ? 28 + leap : 30 + ((month + month / 8) & 1);
}

/* Whether a text is such a time, and its seconds since 1970: as `datetime.fromisoformat(text).timestamp()` with UTC
 * where no zone is given. */
static int
moment_of(PyObject *text, double *seconds)
{
    if (!PyUnicode_CheckExact(text) || !PyUnicode_IS_ASCII(text)) {
        return 0;
    }
    const unsigned char *at = PyUnicode_1BYTE_DATA(text), *end = at + PyUnicode_GET_LENGTH(text);
    int year = digits(&at, end, 4), month = passed(&at, end, '-') ? digits(&at, end, 2) : -1;
    int day = passed(&at, end, '-') ? digits(&at, end, 2) : -1;
    if (!passed(&at, end, 'T') && !passed(&at, end, ' ')) {
        return 0;
    }
    int hour = digits(&at, end, 2), minute = passed(&at, end, ':') ? digits(&at, end, 2) : -1;
    int second = passed(&at, end, ':') ? digits(&at, end, 2) : -1;
    /* To 2199: until then, a double holds every microsecond. */
    if (year < 1970 || year > 2199 || month < 1 || month > 12 || day < 1 || day > days_in(year, month) || hour < 0 ||
        hour > 23 || minute < 0 || minute > 59 || second < 0 || second > 59) {
        return 0;
    }
    long long micros = 0, unit = 1000000;
    if (passed(&at, end, '.')) {
        const unsigned char *first = at;
        for (; at < end && *at >= '0' && *at <= '9'; at++) {
            unit /= 10; /* 0 after six digits: what is finer is dropped */
            micros += unit * (*at - '0');
        }
        if (at == first) {
            return 0;
        }
    }
    long long whole = 86400 * days_to(year, month, day) + 3600 * hour + 60 * minute + second;
    if (at < end && !passed(&at, end, 'Z')) {
        int west = *at == '-';
        if (!west && *at != '+') {
            return 0;
        }
        at++;
        int hours = digits(&at, end, 2), minutes = passed(&at, end, ':') ? digits(&at, end, 2) : -1;
        if (hours < 0 || hours > 23 || minutes < 0 || minutes > 59) {
            return 0;
        }
        whole += (west ? 1 : -1) * (3600LL * hours + 60 * minutes);
    }
    if (at != end) {
        return 0;
    }
    *seconds = (double)(1000000 * whole + micros) / 1e6;
    return 1;
}

#endif
