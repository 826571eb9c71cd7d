// Package report keeps the figures of measurements in one JSON file, and writes them as tables into a Markdown page,
// between two marks. It does not know what is measured.
package report
