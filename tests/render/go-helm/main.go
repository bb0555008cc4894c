// Copyright 2026 Flant JSC
// SPDX-License-Identifier: Apache-2.0

// Renders charts with Helm's own engine, as `helm template` does: questions on stdin, one JSON object a line
// ({"files": {path: text}, "values": text}), answers on stdout, one a line ({path: text}).
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
)

type question struct {
	// Files of the chart by their path in it, Chart.yaml among them.
	Files map[string]string `json:"files"`
	// Values as the text of a values file.
	Values string `json:"values"`
}

func main() {
	lines := bufio.NewReaderSize(os.Stdin, 1<<20)
	answers := json.NewEncoder(os.Stdout)
	answers.SetEscapeHTML(false)
	decoder := json.NewDecoder(lines)
	for decoder.More() {
		var asked question
		if err := decoder.Decode(&asked); err != nil {
			fail(err)
		}
		rendered, err := render(asked)
		if err != nil {
			fail(err)
		}
		if err := answers.Encode(rendered); err != nil {
			fail(err)
		}
	}
}

func render(asked question) (map[string]string, error) {
	values, err := chartutil.ReadValues([]byte(asked.Values))
	if err != nil {
		return nil, err
	}
	loaded, err := load(asked.Files)
	if err != nil {
		return nil, err
	}
	release := chartutil.ReleaseOptions{Name: "ai-inference", Namespace: "d8-ai-inference", Revision: 1, IsInstall: true}
	given, err := chartutil.ToRenderValues(loaded, values, release, nil)
	if err != nil {
		return nil, err
	}
	return engine.Render(loaded, given)
}

func load(files map[string]string) (*chart.Chart, error) {
	buffered := make([]*loader.BufferedFile, 0, len(files))
	for name, text := range files {
		buffered = append(buffered, &loader.BufferedFile{Name: name, Data: []byte(text)})
	}
	return loader.LoadFiles(buffered)
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}
