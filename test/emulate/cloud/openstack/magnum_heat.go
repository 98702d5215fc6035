package openstack

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

// serveHeat answers as much of Heat as shows which server belongs to which node group:
// stacks by name and ID, the resource kube_minions, and the output refs_map of the stack
// behind it. A stack that is asked for by ID alone is answered with a redirect.
func (m *magnum) serveHeat(r *Region, q *call) {
	if m.heatForbidden {
		q.fail(http.StatusForbidden, "You are not authorized to complete this action.")
		return
	}
	parts := strings.Split(strings.Trim(q.path, "/"), "/")
	if len(parts) < 3 || parts[0] != q.token.login.ProjectID || parts[1] != "stacks" || q.Method != http.MethodGet {
		q.fail(http.StatusNotFound, "The resource could not be found.")
		return
	}
	name, id, nested, g := m.stack(parts[2])
	switch {
	case id == "" || len(parts) > 3 && parts[3] != id:
		q.fail(http.StatusNotFound, "The Stack ("+parts[2]+") could not be found.")
	case len(parts) == 3:
		q.w.header.Set("Location", r.url("/orchestration/v1/"+demoProjectID+"/stacks/"+name+"/"+id))
		q.w.status = http.StatusFound
	case len(parts) == 4:
		q.answer(http.StatusOK, map[string]any{"stack": m.describeStack(name, id, nested, g)})
	case len(parts) == 6 && parts[4] == "resources" && parts[5] == "kube_minions" && !nested && g != nil:
		q.answer(http.StatusOK, map[string]any{"resource": map[string]any{
			"resource_name": "kube_minions", "logical_resource_id": "kube_minions", "resource_type": "OS::Heat::ResourceGroup",
			"physical_resource_id": g.nested, "resource_status": "UPDATE_COMPLETE", "resource_status_reason": "state changed", "links": []any{},
			"required_by": []any{}, "creation_time": g.Created.UTC().Format(time.RFC3339), "updated_time": g.Updated.UTC().Format(time.RFC3339)}})
	default:
		q.fail(http.StatusNotFound, "The Resource could not be found.")
	}
}

// stack finds a stack by name or ID: a group's own (the cluster's, for the default
// group), or the nested one of its nodes.
func (m *magnum) stack(ident string) (name, id string, nested bool, g *nodeGroup) {
	for _, c := range m.clusters {
		if c.Driver != HeatDriver {
			continue
		}
		for _, g := range c.groups {
			switch ident {
			case g.StackID, g.stackName:
				return g.stackName, g.StackID, false, g
			case g.nested, g.stackName + "-kube_minions-" + g.nested[:8]:
				return g.stackName + "-kube_minions-" + g.nested[:8], g.nested, true, g
			}
		}
	}
	return "", "", false, nil
}

func (m *magnum) describeStack(name, id string, nested bool, g *nodeGroup) map[string]any {
	outputs := []any{}
	if nested {
		refs := map[string]string{}
		for _, s := range g.slots {
			if refs[strconv.Itoa(s.index)] = s.server; s.server == "" {
				refs[strconv.Itoa(s.index)] = "kube-minion"
			}
		}
		outputs = append(outputs, map[string]any{"output_key": "refs_map", "description": "No description given", "output_value": refs})
	}
	return map[string]any{"id": id, "stack_name": name, "stack_status": g.Status, "stack_status_reason": g.StatusReason, "outputs": outputs,
		"creation_time": g.Created.UTC().Format(time.RFC3339), "updated_time": g.Updated.UTC().Format(time.RFC3339),
		"parameters": map[string]string{}, "capabilities": []any{}, "notification_topics": []any{}, "links": []any{}, "tags": []string{},
		"template_description": "", "description": "", "disable_rollback": true, "timeout_mins": 60, "stack_owner": ""}
}
