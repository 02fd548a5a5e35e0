"""What /proc tells of sockets that listen, and of those whose backlog overflowed."""

from uncork.engines.services.inspection import listening_inodes, overflows_in, unconnected_inodes

TCP = """\
  sl  local_address rem_address   st tx_queue rx_queue timer retrnsmt   uid  timeout inode
   0: 0100007F:1F90 00000000:0000 0A 00000000:00000003 00:00000000 00000000     0        0 777 1
   1: 00000000:0016 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 539 1
   2: 0100007F:1F90 0100007F:C350 01 00000000:00000000 00:00000000 00000000     0        0 778 1
   3: 0100007F:1F90 00000000:0000 0A 00000000:00000009 00:00000000 00000000     0        0 779 1
"""
UDP = """\
   sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode ref
  101: 0100007F:C351 0100007F:20FB 01 00000000:00000000 00:00000000 00000000     0        0 880 2 0 0
  102: 00000000:20FB 00000000:0000 07 00000000:00000000 00:00000000 00000000     0        0 881 2 0 0
  103: 0100007F:1F90 00000000:0000 07 00000000:00000000 00:00000000 00000000     0        0 882 2 0 0
"""
NETSTAT = """\
TcpExt: SyncookiesSent ListenOverflows ListenDrops
TcpExt: 0 203 204
IpExt: InNoRoutes InTruncatedPkts
IpExt: 0 0
"""


def test_sockets_that_listen_on_a_port_stand_first_with_how_many_wait():
    assert list(listening_inodes(TCP.splitlines(), 8080)) == [("777", 3)]
    assert list(listening_inodes(TCP.splitlines(), 9)) == []


def test_udp_sockets_that_receive_from_anyone_are_those_of_servers():
    assert list(unconnected_inodes(UDP.splitlines(), 0x20FB)) == ["881"]
    assert list(unconnected_inodes(UDP.splitlines(), 0xC351)) == []


def test_overflows_are_found_by_their_name():
    assert overflows_in(NETSTAT) == 203
    assert overflows_in("") is None
    assert overflows_in("TcpExt: A\nTcpExt: 1\n") is None
