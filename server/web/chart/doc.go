// Package chart draws charts as SVG for a page: stacked columns, bars, a heat map of the week, a year of days, and an
// area with marks. Colours are classes (s0 to s7 for series, h0 to h4 for heat); the drawings have neither style nor
// script. Each drawing has a title and a description, and each mark a title; the page adds a table.
//
// It takes numbers and labels, and knows nothing of sessions.
package chart
