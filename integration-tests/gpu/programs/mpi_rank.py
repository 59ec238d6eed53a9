#!/usr/bin/env python3
"""A rank under mpirun, for programs that read what torchrun sets.

    mpirun -np N mpi_rank.py PROGRAM ARGUMENT...
"""
import os
import sys

# Open MPI's names, then those of MPICH.
rank = os.environ.get("OMPI_COMM_WORLD_RANK") or os.environ["PMI_RANK"]
size = os.environ.get("OMPI_COMM_WORLD_SIZE") or os.environ["PMI_SIZE"]
os.environ.update(RANK=rank, LOCAL_RANK=rank, WORLD_SIZE=size, MASTER_ADDR="127.0.0.1", MASTER_PORT="29502")
os.execv(sys.executable, [sys.executable, *sys.argv[1:]])
