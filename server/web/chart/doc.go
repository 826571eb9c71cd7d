// Package chart draws figures as SVG that stands in a page: bars over days, an activity heat map, a year of days, the
// course of a value with marks along it. Colours are classes (s0 to s7 for series, h0 to h4 for heat); there is neither
// style nor script in the drawings. Each has a title and a description, and each mark a title of its own; the page puts a
// table beside them.
//
// It knows numbers and words, nothing of sessions.
package chart
