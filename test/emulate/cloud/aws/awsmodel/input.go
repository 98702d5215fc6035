package awsmodel

import (
	"fmt"
	"strings"
)

// Knows says whether a service has an action, and whether the action's answer
// has content of its own.
func (m Models) Knows(service, action string) (known, content bool) {
	api := m[service]
	if api == nil {
		return false, false
	}
	op, known := api.Operations[action]
	return known, op.Output != nil
}

// CheckParam says whether a parameter of the query protocols exists, given by
// its pattern: "Filter.N.Value.N", or "LaunchTemplateData.*" for all below.
func (m Models) CheckParam(service, action, pattern string) error {
	api := m[service]
	op, known := api.Operations[action]
	if !known || op.Input == nil {
		return fmt.Errorf("%s:%s has no input", service, action)
	}
	at := api.Shapes[op.Input.Shape]
	parts := strings.Split(pattern, ".")
	for i := 0; i < len(parts); i++ {
		part := parts[i]
		switch {
		case part == "*":
			return nil
		case at.Type == "structure":
			next := api.input(at, part)
			if next == nil {
				return fmt.Errorf("%s:%s has no parameter %s", service, action, strings.Join(parts[:i+1], "."))
			}
			at = next
		case at.Type == "list":
			if api.Metadata.Protocol == "query" && !at.Flattened {
				if part != "member" || i+1 == len(parts) {
					return fmt.Errorf("%s:%s: a list is not written like %s", service, action, pattern)
				}
				i++
				part = parts[i]
			}
			if part != "N" {
				return fmt.Errorf("%s:%s: a list is not written like %s", service, action, pattern)
			}
			at = api.Shapes[at.Member.Shape]
		default:
			return fmt.Errorf("%s:%s: nothing can follow %s", service, action, strings.Join(parts[:i], "."))
		}
	}
	return nil
}

// input finds the member of a structure that a request calls name. EC2 says
// queryName, or else locationName with its first letter in upper case.
func (m *model) input(s *shape, name string) *shape {
	for member, r := range s.Members {
		wire := wireName(member, r)
		if m.Metadata.Protocol == "ec2" {
			if wire = strings.ToUpper(wire[:1]) + wire[1:]; r.QueryName != "" {
				wire = r.QueryName
			}
		}
		if wire == name {
			return m.Shapes[r.Shape]
		}
	}
	return nil
}
