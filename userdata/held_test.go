package userdata

import (
	"reflect"
	"testing"
)

// TestRead: what a specification says of the join is read from its user data in each format.
func TestRead(t *testing.T) {
	for _, format := range Formats() {
		for name, s := range map[string]Spec{"plain": sample(), "attested": attested(t), "openstack": onOpenStack()} {
			s.Format, s.System = format, map[string]string{"ignition": "flatcar"}[format]
			h, err := Read(rendered(t, s))
			if err != nil {
				t.Errorf("%s %s: %v", format, name, err)
				continue
			}
			want := Held{KubernetesVersion: s.KubernetesVersion, PerServer: name == "openstack",
				Join: Join{Endpoint: s.Join.Endpoint, CACertHashes: s.Join.CACertHashes, Attest: s.Join.Attest, Token: s.Join.Token}}
			if want.PerServer {
				want.Join.Token = ""
			}
			if !reflect.DeepEqual(h, want) {
				t.Errorf("%s %s: %+v, want %+v", format, name, h, want)
			}
		}
	}
	if h, err := Read([]byte("#!/bin/sh\nkubeadm join\n")); err == nil {
		t.Errorf("somebody's own: %+v", h)
	}
}
