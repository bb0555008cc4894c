// Copyright 2026 Flant JSC
// SPDX-License-Identifier: Apache-2.0

// Package action stands in for nelm's package of the same name. addon-operator calls it only with USE_NELM set,
// which the test bed never does: every call answers that nelm is not in this build.
package action

import (
	"context"
	"errors"
	"time"

	"github.com/werf/nelm/pkg/common"
)

// errAbsent is what every action of this stand-in returns.
var errAbsent = errors.New("built without nelm")

// ErrBuildPlan is compared with errors.Is by addon-operator's fallback client.
var ErrBuildPlan = errors.New("build plan")

// ReleaseNotFoundError is matched with errors.As by addon-operator.
type ReleaseNotFoundError struct{}

func (*ReleaseNotFoundError) Error() string { return "release not found" }

// Status is the state of a release.
type Status string

func (s Status) String() string { return string(s) }

// Chart names the chart of a release.
type Chart struct{ Name string }

// Release is what addon-operator reads of a release.
type Release struct {
	Name          string
	Chart         *Chart
	Revision      int
	Status        Status
	StorageLabels map[string]string
}

// ReleaseGetOptions are the arguments of ReleaseGet that addon-operator sets.
type ReleaseGetOptions struct {
	common.KubeConnectionOptions
	OutputNoPrint        bool
	ReleaseStorageDriver string
	Revision             int
}

// ReleaseGetResultV1 is the answer of ReleaseGet.
type ReleaseGetResultV1 struct {
	Release *Release
	Values  map[string]any
}

// ReleaseGet answers that nelm is not in this build.
func ReleaseGet(context.Context, string, string, ReleaseGetOptions) (*ReleaseGetResultV1, error) {
	return nil, errAbsent
}

// ReleaseInstallOptions are the arguments of ReleaseInstall that addon-operator sets.
type ReleaseInstallOptions struct {
	common.KubeConnectionOptions
	common.ValuesOptions
	common.TrackingOptions
	common.ReleaseInstallRuntimeOptions
	AutoRollback           bool
	Chart                  string
	DefaultChartName       string
	DefaultChartVersion    string
	DefaultChartAPIVersion string
	Timeout                time.Duration
	InstallGraphPath       string
}

// ReleaseInstall answers that nelm is not in this build.
func ReleaseInstall(context.Context, string, string, ReleaseInstallOptions) error { return errAbsent }

// ReleaseUninstallOptions are the arguments of ReleaseUninstall that addon-operator sets.
type ReleaseUninstallOptions struct {
	common.KubeConnectionOptions
	common.TrackingOptions
	ReleaseHistoryLimit      int
	DefaultDeletePropagation string
	DeleteReleaseNamespace   bool
	ReleaseStorageDriver     string
	Timeout                  time.Duration
	UninstallGraphPath       string
}

// ReleaseUninstall answers that nelm is not in this build.
func ReleaseUninstall(context.Context, string, string, ReleaseUninstallOptions) error {
	return errAbsent
}

// ReleaseListOptions are the arguments of ReleaseList that addon-operator sets.
type ReleaseListOptions struct {
	common.KubeConnectionOptions
	OutputNoPrint        bool
	ReleaseNamespace     string
	ReleaseStorageDriver string
}

// ReleaseListResultV1 is the answer of ReleaseList.
type ReleaseListResultV1 struct{ Releases []*Release }

// ReleaseList answers that nelm is not in this build.
func ReleaseList(context.Context, ReleaseListOptions) (*ReleaseListResultV1, error) {
	return nil, errAbsent
}

// ChartRenderOptions are the arguments of ChartRender that addon-operator sets.
type ChartRenderOptions struct {
	common.KubeConnectionOptions
	common.ValuesOptions
	OutputFilePath         string
	Chart                  string
	DefaultChartName       string
	DefaultChartVersion    string
	DefaultChartAPIVersion string
	ExtraLabels            map[string]string
	ExtraAnnotations       map[string]string
	ReleaseName            string
	ReleaseNamespace       string
	ReleaseStorageDriver   string
	Remote                 bool
	ForceAdoption          bool
}

// Resource is one rendered object.
type Resource struct{ Unstruct map[string]any }

// ChartRenderResultV2 is the answer of ChartRender.
type ChartRenderResultV2 struct{ Resources []Resource }

// ChartRender answers that nelm is not in this build.
func ChartRender(context.Context, ChartRenderOptions) (*ChartRenderResultV2, error) {
	return nil, errAbsent
}
