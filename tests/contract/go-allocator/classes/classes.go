// Copyright 2026 Flant JSC
// SPDX-License-Identifier: Apache-2.0

// Package classes lists device classes to the allocator, as the scheduler's informer does.
package classes

import (
	"fmt"

	resourceapi "k8s.io/api/resource/v1"
)

// Lister holds the classes of one question by name.
type Lister map[string]*resourceapi.DeviceClass

// Of makes a Lister of the classes.
func Of(given []*resourceapi.DeviceClass) Lister {
	byName := Lister{}
	for _, class := range given {
		byName[class.Name] = class
	}
	return byName
}

// List tells all of them.
func (l Lister) List() ([]*resourceapi.DeviceClass, error) {
	var all []*resourceapi.DeviceClass
	for _, class := range l {
		all = append(all, class)
	}
	return all, nil
}

// Get tells one; an unknown name is an error.
func (l Lister) Get(name string) (*resourceapi.DeviceClass, error) {
	if class, found := l[name]; found {
		return class, nil
	}
	return nil, fmt.Errorf("device class %s not found", name)
}
