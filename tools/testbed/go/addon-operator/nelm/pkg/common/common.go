// Copyright 2026 Flant JSC
// SPDX-License-Identifier: Apache-2.0

// Package common stands in for nelm's package of the same name: the option structs that addon-operator fills.
package common

// KubeConnectionOptions say which cluster is meant.
type KubeConnectionOptions struct{ KubeContextCurrent string }

// ValuesOptions carry Helm values.
type ValuesOptions struct {
	ValuesFiles []string
	ValuesSet   []string
}

// TrackingOptions say how long objects are watched after an install.
type TrackingOptions struct {
	NoPodLogs                    bool
	NoFinalTracking              bool
	LegacyHelmCompatibleTracking bool
}

// ReleaseInstallRuntimeOptions say how a release is installed.
type ReleaseInstallRuntimeOptions struct {
	DefaultDeletePropagation string
	ExtraLabels              map[string]string
	ExtraAnnotations         map[string]string
	NoInstallStandaloneCRDs  bool
	ReleaseHistoryLimit      int
	ReleaseLabels            map[string]string
	ReleaseStorageDriver     string
	ForceAdoption            bool
}
