package groups

import (
	"encoding/json"
	"fmt"
	"maps"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

// Devices are what one driver of dynamic resource allocation publishes on a machine.
type Devices struct {
	Driver     string            `json:",omitempty"`
	Count      int               `json:",omitempty"`
	Attributes map[string]string `json:",omitempty"` // as cluster.Device has them
	Capacity   map[string]string `json:",omitempty"`
}

// mostDevices is ResourceSliceMaxDevices.
const mostDevices = 128

// versionPrefix marks an attribute that is a version.
const versionPrefix = "version:"

func (r *reader) devices(at string, v any) Devices {
	d := Devices{Count: 1}
	r.object(at, v, fields{
		"driver": func(at string, v any) { d.Driver, _ = r.text(at, v) },
		"count": func(at string, v any) {
			if d.Count, _ = r.whole(at, v, 1); d.Count > mostDevices {
				r.bad(at, "%d is too much: write a number up to %d", d.Count, mostDevices)
			}
		},
		"attributes": func(at string, v any) {
			d.Attributes = map[string]string{}
			r.entries(at, v, func(at, name string, v any) { d.Attributes[name] = r.attribute(at, v) })
		},
		"capacity": func(at string, v any) {
			d.Capacity = map[string]string{}
			r.entries(at, v, func(at, name string, v any) {
				text, ok := r.text(at, v)
				if _, err := resource.ParseQuantity(text); ok && err != nil {
					r.bad(at, "%q is no quantity: write for example 40Gi", text)
				}
				d.Capacity[name] = text
			})
		},
	})
	if d.Driver == "" {
		r.bad(join(at, "driver"), "name the driver, as the ResourceSlices of its devices do, for example gpu.nvidia.com")
	}
	return d
}

// attribute reads a value with the type that YAML gives it. A version is a text that says so.
func (r *reader) attribute(at string, v any) string {
	switch x := v.(type) {
	case bool:
		return "bool:" + strconv.FormatBool(x)
	case json.Number:
		if n, err := x.Int64(); err == nil {
			return fmt.Sprint("int:", n)
		}
	case string:
		if strings.HasPrefix(x, versionPrefix) {
			return x
		}
		return "string:" + x
	}
	r.bad(at, "%s is no attribute: write a text, a whole number, true, false or \"version:1.2.3\"", kind(v))
	return ""
}

// applyDevices lays the file's devices over a template, in place of all others.
func applyDevices(to *cluster.Template, list []Devices) {
	out := &cluster.Devices{}
	for _, of := range list {
		d := cluster.Device{Driver: of.Driver, Attributes: of.qualified(of.Attributes), Capacity: of.qualified(of.Capacity)}
		for i := range of.Count {
			d.Name = fmt.Sprint(len(out.Devices), "-", i)
			out.Devices = append(out.Devices, d)
		}
	}
	to.Devices = out
}

// qualified gives names without a domain that of the driver.
func (d *Devices) qualified(of map[string]string) map[string]string {
	out := maps.Clone(of)
	for name, v := range of {
		if !strings.Contains(name, "/") {
			delete(out, name)
			out[d.Driver+"/"+name] = v
		}
	}
	return out
}
