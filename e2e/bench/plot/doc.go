// Package plot draws figures as SVG pictures that read well on light and dark pages. It does not know what they say.
package plot
