// Package audit reads stored lines back: it computes the digests of generations and reports what does not fit
// together in a store. It changes nothing.
package audit
