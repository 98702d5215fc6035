package groups

import (
	"reflect"
	"strings"
	"testing"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

// TestToldDevices: a file tells what drivers publish on a group's next machine.
func TestToldDevices(t *testing.T) {
	f, err := Parse([]byte(`groups: {w: {template: {devices: [
  {driver: gpu.example.com, count: 2, attributes: {model: a100, numa: 1, ecc: true, cuda: "version:12.4.0", k8s.io/root: r0}, capacity: {memory: 40Gi}},
  {driver: nic.example.com}]}}}`), nil)
	if err != nil {
		t.Fatal(err)
	}
	list := []cluster.NodeGroup{{ID: "w", Template: cluster.Template{Spec: "lt"}}}
	f.Apply(list, cluster.Reservation{})
	got := list[0].Template.Devices
	if len(got.Devices) != 3 || got.Devices[0].Name == got.Devices[1].Name || got.Devices[2].Driver != "nic.example.com" || list[0].Template.Spec == "lt" {
		t.Fatalf("%+v", got)
	}
	gpu := cluster.Device{Driver: "gpu.example.com", Name: got.Devices[0].Name, Capacity: map[string]string{"gpu.example.com/memory": "40Gi"},
		Attributes: map[string]string{"gpu.example.com/model": "string:a100", "gpu.example.com/numa": "int:1", "gpu.example.com/ecc": "bool:true", "gpu.example.com/cuda": "version:12.4.0", "k8s.io/root": "string:r0"}}
	if !reflect.DeepEqual(got.Devices[0], gpu) {
		t.Errorf("got  %+v\nwant %+v", got.Devices[0], gpu)
	}
	for text, want := range map[string]string{
		"{count: 2}":                           "name the driver",
		"{driver: a.io, count: 0}":             "is no whole number of 1 or more",
		"{driver: a.io, count: 129}":           "129 is too much",
		"{driver: a.io, attributes: {x: 1.5}}": "is no attribute",
		"{driver: a.io, capacity: {x: much}}":  `"much" is no quantity`,
		"{driver: a.io, model: x}":             "groups.w.template.devices[0].model",
	} {
		if _, err := Parse([]byte("groups: {w: {template: {devices: ["+text+"]}}}"), nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}
