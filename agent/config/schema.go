package config

import "encoding/json"

// schemaURL is where the JSON schema of groups.yaml is published; editors read it by the
// first line of the example.
const schemaURL = "https://raw.githubusercontent.com/autoscaler-agent/autoscaler-agent/main/docs/groups.schema.json"

// schema is a part of a JSON schema.
type schema map[string]any

// GroupsSchema is the JSON schema of groups.yaml, for editors (docs/groups.schema.json). A
// test compares its fields with those that the readers of the file know. It says less than
// they do: what one field demands of another is theirs alone.
func GroupsSchema() string {
	root := object("Settings of autoscaler-agent's node groups", schema{
		"groups":            schema{"description": "Settings by the name of a group, or by a pattern such as workers-*.", "type": nullable("object"), "additionalProperties": groupSchema()},
		"headroom":          list("Room that is kept free, so that new pods start at once.", headroomSchema()),
		machinesSection:     list("Machines whose cloud cannot tell their names and addresses: the witness for their certificates.", machineSchema()),
		controlPlaneSection: list("Machines of the control plane: the witness for the certificates of their kubelets.", controlPlaneSchema()),
		"asg":               asgSchema(),
		"nova":              novaSchema(),
		"externalgrpc":      object("Machines whose plug-in tells no names and addresses.", schema{"instances": list("The machines.", listedSchema())}),
	})
	root["$schema"], root["$id"], root["title"] = "http://json-schema.org/draft-07/schema#", schemaURL, "groups.yaml of autoscaler-agent"
	root["type"] = nullable("object")
	text, err := json.MarshalIndent(root, "", "  ")
	if err != nil {
		panic(err) // maps, slices and texts always marshal
	}
	return string(text) + "\n"
}

func nullable(name string) []string { return []string{name, "null"} }

// object has these fields and no other.
func object(about string, fields schema, required ...string) schema {
	out := schema{"description": about, "type": "object", "additionalProperties": false, "properties": fields}
	if len(required) > 0 {
		out["required"] = required
	}
	return out
}

func list(about string, items schema) schema {
	return schema{"description": about, "type": nullable("array"), "items": items}
}

func word(about string) schema { return schema{"description": about, "type": "string", "minLength": 1} }

func oneOf(about string, values ...string) schema {
	return schema{"description": about, "enum": values}
}

func flag(about string) schema { return schema{"description": about, "type": "boolean"} }

func atLeast(about, kind string, least int) schema {
	return schema{"description": about, "type": kind, "minimum": least}
}

func fraction(about string) schema {
	return schema{"description": about, "type": "number", "minimum": 0, "maximum": 1}
}

func duration(about string) schema {
	return schema{"description": about + " For example 90s, 10m or 1h30m.", "type": "string", "pattern": `^([0-9]+(\.[0-9]+)?(ns|us|ms|s|m|h))+$|^0$`}
}

func amount(about string) schema {
	return schema{"description": about, "type": []string{"string", "number"}, "pattern": `^[0-9]+(\.[0-9]+)?(m|k|M|G|T|P|Ki|Mi|Gi|Ti|Pi|[eE][0-9]{1,2})?$`, "minimum": 0}
}

func marks(about string) schema {
	return schema{
		"description": about, "type": nullable("object"), "propertyNames": schema{"pattern": `^([a-z0-9.-]+/)?[A-Za-z0-9]([A-Za-z0-9_.-]*[A-Za-z0-9])?$`},
		"additionalProperties": schema{"type": []string{"string", "number"}, "maxLength": 63},
	}
}

func taints() schema {
	return list("Taints as kubectl writes them.", schema{"type": "string", "pattern": `^[^=:]+(=[^:]*)?:(NoSchedule|PreferNoSchedule|NoExecute)$`})
}

func words(about string) schema { return list(about, schema{"type": "string"}) }

func groupSchema() schema {
	g := object("What an operator says about one group. Bounds are the cloud's.", schema{
		"price":    atLeast("Of one machine for an hour; any currency, the same for all groups.", "number", 0),
		"priority": atLeast("For the expander priority; holds before the ConfigMap.", "integer", 0),
		"balance":  word("Groups with one name get machines evenly."),
		"pause": schema{"description": "Neither grown nor shrunk: true, a time, or both with a reason.", "anyOf": []schema{
			{"type": "boolean"}, {"type": "string", "format": "date-time"},
			object("A pause with its end and its reason.", schema{"until": schema{"description": "A time such as 2026-12-24T18:00:00Z.", "type": "string", "format": "date-time"}, "why": word("The reason, for the journal.")}),
		}},
		"options": object("Cluster Autoscaler's options of a group, by its names.", schema{
			"scaleDownUtilizationThreshold":    fraction("Requests above this share keep a node."),
			"scaleDownGpuUtilizationThreshold": fraction("The same for nodes with GPUs, of which only the GPUs count."),
			"scaleDownUnneededTime":            duration("How long a node must be unneeded before it goes."),
			"scaleDownUnreadyTime":             duration("How long a node must be not Ready before it goes."),
			"maxNodeProvisionTime":             duration("How long an instance may take to become a Node."),
			"maxNodeStartupTime":               duration("How long a Node may take to become Ready."),
			"ignoreDaemonSetsUtilization":      flag("Whether DaemonSets are left out of the share."),
			"drift":                            flag("Whether nodes that are not what the group would start today are replaced."),
			"maxNodeAge":                       duration("Age at which a node is replaced."),
			"repairAfter":                      duration("How long a node must have been sick before it is replaced."),
			"replaceDrainTime":                 duration("How long the drain of a node that is replaced may last beyond the pods' own grace period."),
			"disruptionBudgets":                word("How many nodes may be disrupted at once, and when: 10%; 0 of idle at 0 9 * * mon-fri for 8h in Europe/Berlin."),
		}),
		"template": object("What the next machine is like, laid over what the cloud says.", schema{
			"labels": marks("Labels of its Node."), "taints": taints(),
			"capacity": schema{
				"description": "Resources: cpu, memory, ephemeral-storage, pods, and extended ones such as nvidia.com/gpu.", "type": nullable("object"),
				"propertyNames": schema{"pattern": `^(cpu|memory|ephemeral-storage|pods|hugepages-.+|[a-z0-9.-]+/.+)$`}, "additionalProperties": amount("How much."),
			},
			"devices": schema{"description": "Devices that drivers of dynamic resource allocation publish on it (ResourceSlices), where no node of the group shows them.", "type": nullable("array"), "items": object("Of one driver.", schema{
				"driver": word("As its ResourceSlices name it: gpu.nvidia.com."), "count": atLeast("How many.", "integer", 1),
				"attributes": schema{"description": "Their attributes; version:1.2.3 is a version.", "type": nullable("object"), "additionalProperties": schema{"type": []string{"string", "integer", "boolean"}}},
				"capacity":   schema{"description": "Their capacity.", "type": nullable("object"), "additionalProperties": amount("How much.")},
			}, "driver")},
		}),
	})
	g["type"] = nullable("object")
	return g
}

func headroomSchema() schema {
	pods := object("So many pods of one size.", schema{"count": atLeast("How many.", "integer", 1), "cpu": amount("Of one pod."), "memory": amount("Of one pod, with its unit."), "ephemeral-storage": amount("Of one pod, with its unit.")}, "count")
	pods["additionalProperties"], pods["patternProperties"] = false, schema{`^[a-z0-9.-]+/.+$`: amount("An extended resource of one pod.")}
	return object("One room, measured in one way: cpu and memory, or pods, or nodes.", schema{
		"name":   word("The journal speaks of it by this name."),
		"cpu":    amount("In all."),
		"memory": amount("In all, with its unit."),
		"pods":   pods,
		"nodes":  object("So many machines of one group.", schema{"count": atLeast("How many.", "integer", 1), "group": word("The group's name.")}, "count", "group"),

		"nodeSelector": marks("Labels of the nodes that the room is on."),
		"tolerations": list("Taints of the nodes that the room may be on.", object("One toleration.", schema{
			"key": word("The taint's key."), "value": schema{"type": "string"}, "operator": oneOf("Equal, the default, or Exists.", "Exists", "Equal"),
			"effect": oneOf("None: all.", "NoSchedule", "PreferNoSchedule", "NoExecute"),
		})),
		"schedule": list("When the room is kept; none: always.", object("Hours on some days.", schema{
			"days":  word("mon-fri, or sat,sun, or daily."),
			"hours": schema{"description": "For example 07:30-19:00; the end may be on the next day.", "type": "string", "pattern": `^ *[0-9]{1,2}:[0-9]{2} *- *[0-9]{1,2}:[0-9]{2} *$`},

			"timeZone": word("For example Europe/Berlin; none: UTC."),
		})),
	}, "name")
}

func machineSchema() schema {
	return object("One machine.", schema{
		"instance": word("The provider ID, as the Node carries it."), "node": word("The name of its Node."),
		"names": words("Further DNS names."), "addresses": words("Its IP addresses."),
	}, "instance", "node")
}

func controlPlaneSchema() schema {
	m := machineSchema()
	m["required"] = []string{"node", "addresses"}
	return m
}

// listedSchema is a machine of a plug-in: the form of the section machines, and what only a
// cloud tells.
func listedSchema() schema {
	m := machineSchema()
	fields := m["properties"].(schema)
	fields["created"] = schema{"description": "When it was started; older requests for certificates are held.", "type": "string", "format": "date-time"}
	fields["type"], fields["zone"] = word("The type of the machine."), word("Its zone.")
	return m
}

// asgSchema is the section of AWS: the pools that make their groups.
func asgSchema() schema {
	span := func(about, of string) schema {
		return object(about, schema{"min": atLeast("The least "+of+".", "integer", 0), "max": atLeast("The most "+of+"; 0: any.", "integer", 0)})
	}
	texts := func(about string) schema {
		return schema{"description": about, "type": "object", "additionalProperties": schema{"type": "string"}}
	}
	return object("Pools of Auto Scaling groups that the agent makes.", schema{
		"pools": list("The pools.", object("A group for each type, zone and market, made by its first purchase.", schema{
			"name": word("The groups' names begin with it."), "launchTemplate": word("ID or name of the launch template."), "version": word("Its version; none: $Latest."),
			"types": list("Instance types, with * for the rest.", word("A type.")), "without": list("Types of these that are left out.", word("A type.")),
			"arch": oneOf("The processors' architecture; none: amd64.", "amd64", "arm64"),
			"cpu":  span("vCPUs of a machine.", "vCPUs"), "memory": span("Memory of a machine.", "GiB"),
			"subnets":  texts("A subnet's ID by availability zone."),
			"capacity": list("The markets; none: on-demand.", oneOf("A market.", "on-demand", "spot")),
			"max":      atLeast("The most machines of all groups together.", "integer", 1), "tags": texts("Further tags of the groups and their machines."),
		}, "name", "launchTemplate", "types", "subnets", "max")),
	})
}

// novaSchema is the section of OpenStack Nova; docs/providers/nova.md has its manual.
func novaSchema() schema {
	domain := word("Nova's [api]dhcp_domain: the host names of servers end with it.")
	network := schema{"anyOf": []schema{word("A network's name."), object("A network with a port of its own.", schema{
		"network": word("The network's name or ID."), "subnet": word("A subnet's ID."), "securityGroups": words("Security groups of the port."),
		"portSecurity": flag("Whether the port is secured."), "allowedAddresses": words("Further addresses that may be used on the port."),
	}, "network")}}
	flavor := schema{"description": "A flavor, or several: the first that there is room for.", "anyOf": []schema{word("A flavor."), {"type": "array", "items": word("A flavor."), "minItems": 1}}}
	least, most, price := atLeast("The fewest machines.", "integer", 0), atLeast("The most machines.", "integer", 1), atLeast("Of one machine for an hour.", "number", 0)
	choice := schema{"anyOf": []schema{word("A flavor."), object("A flavor with what its group has of its own.", schema{
		"flavor": flavor, "name": word("Behind the group's name and a dash."), "min": least, "max": most, "price": price,
	}, "flavor")}}
	group := object("One node group, or one for each of its flavors.", schema{
		"name": word("Nodes are named after it."), "cloud": word("The cloud, where there are several."),
		"flavor": flavor, "flavors": schema{"description": "A group of each flavor.", "type": "array", "items": choice, "minItems": 1},
		"eachZone": flag("Whether each of the zones gets groups of its own."), "maxTotal": atLeast("The most machines of all groups of flavors.", "integer", 1),
		"image": word("The image's name or ID."), "networks": list("The networks of a server.", network), "securityGroups": words("Security groups of its ports."),
		"key": word("A key pair's name."), "zones": words("Availability zones."), "serverGroup": word("affinity, anti-affinity, soft-affinity, soft-anti-affinity, or the ID of a server group."),
		"bootVolume": object("The disk that is made of the image.", schema{"size": atLeast("In GiB.", "integer", 1), "type": word("The volume type.")}, "size"),
		"floatingIP": word("The external network of a floating IP."), "configDrive": flag("Whether user data comes on a drive."),
		"metadata": schema{"description": "Metadata of a server.", "type": "object", "additionalProperties": schema{"type": "string", "maxLength": 255}},
		"labels":   marks("Labels of the Node."), "taints": taints(), "min": least, "max": most,
		"price": price, "userdata": schema{"description": "A file: autoscaler-agent userdata render --cloud openstack.", "type": "string", "pattern": "^/"},
		"arch": oneOf("The processors' architecture.", "amd64", "arm64"),
	}, "name", "image", "networks", "userdata")
	group["oneOf"] = []schema{{"required": []string{"flavor", "max"}}, {"required": []string{"flavors"}}}
	return object("Node groups of plain OpenStack servers.", schema{
		"cluster": word("The cluster's name in the servers' tags."), "dhcpDomain": domain,
		"clouds": list("Regions, where there are several.", object("One region of one OpenStack.", schema{
			"name": word("By which groups speak of it."), "cloud": word("Its name in clouds.yaml."), "region": word("The region."),
			"providerIDRegion": flag("Whether provider IDs carry the region."), "dhcpDomain": domain,
		}, "name")),
		"groups": list("The node groups.", group),
	})
}
