// Package page is what all pages of the viewer share: the layout, templates, assets, error pages, and answers to
// invalid requests. It does not know what a page shows or how its reader logged in.
package page
