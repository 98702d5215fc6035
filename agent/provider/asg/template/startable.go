package template

import "fmt"

// Startable is what a group may start next.
type Startable struct {
	Versions map[string]bool // launch template versions, "ID/number"
	Types    map[string]bool // instance types
}

func (d *draft) startable() Startable {
	s := Startable{map[string]bool{}, map[string]bool{}}
	for _, v := range d.variants {
		s.Versions[fmt.Sprintf("%s/%d", v.template.id, v.template.version)] = true
		s.Types[v.typ] = true
	}
	return s
}
