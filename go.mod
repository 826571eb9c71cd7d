module github.com/ccship/ccship

go 1.26
