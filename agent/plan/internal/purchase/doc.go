// Package purchase chooses what to buy for the pods that wait by simulating kube-scheduler: Of(packing.Packer).
//
// There is one board (schedsim.Sim): the nodes, the machines that are upcoming, and the machines of the purchase that is tried. A purchase
// is a number of machines by group. It is judged as the cluster that it makes: all its machines join, kube-scheduler binds the pods that
// wait, in the order of its queue and by its scores, and what it leaves is a second purchase. A few purchases are proposed by what
// machines hold for their price (propose.go), each is tried in one draw of what nobody knows (trial.go), machines of the best are exchanged
// for cheaper ones (exchange.go), and the best of these stand several draws (choose.go).
//
// Missing still, beside large rounds that packing, topology and binpack decide (4,950 lines): the board without packing.Packer, one
// representation with agent/fit, moves that see what changed in place of whole trials (a trial of 6,000 pods in 199 classes takes a third of the
// budget), and proposals that serve first the classes with the fewest groups (anti-affinity on zones can lock a class out).
//
// Layer 1, pure. It refuses rounds that are too large to bind pod by pod (TooLarge): packing decides these.
//
// Costs in doc comments have the letters of package schedsim.
package purchase
