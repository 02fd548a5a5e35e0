"""Load from the nodes of a cluster, as one run. Only this room imports Ray, and only when it is used.

`loads` is the story. `agent` and `part_process` run on the nodes; `ports` is what the coordinator needs of a
cluster, and `ray_nodes` how Ray provides it.
"""
