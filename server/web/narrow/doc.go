// Package narrow reads from an address what a listing is narrowed to, and offers the reader what it can be narrowed to:
// projects, machines, users, models, dates. It does not know what is listed.
package narrow
