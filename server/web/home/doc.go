// Package home shows the sessions: what runs now, whether everything is safe, and the list, by day or by project. A
// page reads as much as it shows, however many sessions there are.
package home
