// Package markup turns the text of conversations into HTML that can do nothing: Markdown, source code, terminal output,
// differences. Whatever the text is, what comes out has no script, no handler, no style, no address but http, https and
// mailto links, and nothing that a browser would fetch by itself.
//
// It knows neither records nor pages. Colours are classes; the style sheet gives them their meaning.
package markup
