// Copyright 2026 Flant JSC
// SPDX-License-Identifier: Apache-2.0

// Package log stands in for nelm's package of the same name: what addon-operator's logger implements.
package log

import "context"

// Level is a log level's name.
type Level string

// The levels addon-operator translates.
const (
	TraceLevel   Level = "trace"
	DebugLevel   Level = "debug"
	InfoLevel    Level = "info"
	WarningLevel Level = "warning"
	ErrorLevel   Level = "error"
)

// BlockOptions title a block of log lines.
type BlockOptions struct{ BlockTitle string }

// Logger is the part of nelm's logger that something could call here: nothing, so one method names it.
type Logger interface {
	Level(ctx context.Context) Level
}

// Default is set by addon-operator and read by nobody.
var Default Logger
