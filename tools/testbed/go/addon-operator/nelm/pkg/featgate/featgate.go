// Copyright 2026 Flant JSC
// SPDX-License-Identifier: Apache-2.0

// Package featgate stands in for nelm's package of the same name.
package featgate

// Gate is a feature gate that does nothing.
type Gate struct{}

// Enable does nothing: there is no feature behind the gate.
func (*Gate) Enable() {}

// FeatGateCleanNullFields is enabled by addon-operator when it makes a nelm client.
var FeatGateCleanNullFields = &Gate{}
