// Copyright 2026 Flant JSC
// SPDX-License-Identifier: Apache-2.0

// Package resource stands in for nelm's package of the same name.
package resource

import "errors"

// ErrResourceDuplicatesFound is compared with errors.Is by addon-operator's fallback client.
var ErrResourceDuplicatesFound = errors.New("resource duplicates found")
