// Package magnum lets the scaler work with the node groups of a Magnum cluster
// (`openstack coe`).
//
// It finds node groups by role or by name, reads them whole (bounds, node count, the Nova
// servers behind them, the template of the next node, what went wrong and why), raises
// a node count and removes nodes by their servers' UUIDs, through Magnum's resize
// action. Which server belongs to which node group is told by Heat where Heat may be
// read, and else by what Nova itself shows: metadata, and the names that Magnum's
// drivers give together with the addresses that Magnum reports.
//
// Magnum accepts a resize before anybody knows whether it works, and loses one that
// comes while another is under way. So one operation per cluster is sent at a time; an
// operation that no read has shown yet is remembered until one does. Beside that what does
// not change is remembered: flavors, and that a server which was removed by name is gone;
// and groups at rest for a few minutes, where the caller allows that
// (provider.WithRepeated).
//
// It refuses to resize while an operation is under way, to lower a node count without
// naming what goes, to remove a node on a driver that would pick another one, to send an
// empty name (Magnum removes an arbitrary node for it, kubernetes/autoscaler#7776), to
// trust the bounds of a list (Magnum's list says 0 and none), and to touch master nodes.
package magnum
