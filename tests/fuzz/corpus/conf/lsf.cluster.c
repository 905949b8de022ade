# lsf.cluster.example: who administers the cluster, and which hosts are in it.
# Check with `lsadmin ckconfig -v`.

Begin ClusterAdmins
# The first one is the primary administrator: the daemons run as that user.
Administrators = lsfadmin carla
End ClusterAdmins

# One host a line. `!`: lim finds model and type. server 1: runs jobs, 0: submits only.
# A number under a load index makes the host busy above it (below it for mem, swp, tmp, it).
Begin Host
HOSTNAME   model    type     server   r1m    mem   RESOURCES
alpha      PC_old   X86_64   1        8.0    -     (rack=r1)
beta       PC_new   X86_64   1        24.0   500   (rack=r1 scratch)
gamma      !        !        1        -      500   (rack=r2 scratch bigmem)
desk1      !        !        0        -      -     ()
End Host

# Ten licences, shared by all hosts.
Begin ResourceMap
RESOURCENAME   LOCATION
licence        (10@[all])
End ResourceMap

Begin Parameters
# Seconds between two exchanges of load.
EXINTERVAL = 15
End Parameters
