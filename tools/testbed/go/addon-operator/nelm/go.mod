module github.com/werf/nelm

go 1.26.0
